# One image for the controller, the gateway and the containers fetch and push of a build pod.
#
#   docker build -t skill-operator .        (or buildah, or Kaniko: nothing here needs more than a plain builder)
#
# BASE is Debian or Ubuntu with Node 24 and npm. What it already has of the programs below is not installed again, so that a prepared base
# builds without a package mirror.
ARG BASE=node:24.21.0-bookworm-slim
ARG BUILD_BASE=${BASE}

FROM ${BUILD_BASE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
# The bundler alone of the tools for development: they are many times the size of what is bundled.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier \
    && npm install --prefix /tools --ignore-scripts --no-audit --no-fund --no-update-notifier \
        "esbuild@$(node -p 'require("./package.json").devDependencies.esbuild')" \
    && ln -s /tools/node_modules/esbuild node_modules/esbuild
COPY tsconfig.json ./
COPY scripts/build.ts scripts/
COPY src src
RUN node scripts/build.ts --outdir /app/dist

FROM ${BASE}
RUN set -eu; \
    for program in git ssh skopeo tini; do command -v "$program" >/dev/null || missing=yes; done; \
    if [ -n "${missing-}" ]; then \
        apt-get update; \
        apt-get install -y --no-install-recommends \
            ca-certificates git libnss-extrausers openssh-client skopeo tini; \
        rm -rf /var/lib/apt/lists/*; \
    fi
# The name of a user id that the cluster chose is written at start; entrypoint.sh says why.
RUN sed -i 's/^passwd:.*/passwd: files extrausers/' /etc/nsswitch.conf \
    && rm -rf /var/lib/extrausers && ln -s /tmp/extrausers /var/lib/extrausers \
    && useradd --uid 65532 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin skill-operator

COPY LICENSE /app/
COPY scripts/image/entrypoint.sh /app/entrypoint
COPY --from=build /app/dist /app/dist

# The young generation may grow to 128 MiB by default, which a burst of short-lived objects fills for nothing; test/bench runs with the same.
ENV NODE_ENV=production HOME=/tmp NODE_OPTIONS=--max-semi-space-size=8
WORKDIR /app
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/bin/tini", "--", "/app/entrypoint"]
CMD ["dist/main.js"]
