# The base image brings envd, which must answer on port 49983 in every CubeSandbox template.
FROM ghcr.io/tencentcloud/cubesandbox-base:2026.16

RUN apt-get update \
    && apt-get install -y --no-install-recommends ffmpeg python3 python3-pil \
    && rm -rf /var/lib/apt/lists/*
