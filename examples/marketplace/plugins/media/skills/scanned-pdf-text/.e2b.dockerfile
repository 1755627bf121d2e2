# E2B adds its own agent to the image, so an ordinary distribution image is enough.
FROM debian:12-slim

RUN apt-get update \
    && apt-get install -y --no-install-recommends poppler-utils tesseract-ocr tesseract-ocr-deu \
    && rm -rf /var/lib/apt/lists/*
