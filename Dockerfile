# The image for people with Docker. `make image` builds the same without Docker, and is what the tests run.
#
#   docker build -t perennial:0.1.0 .
#   docker buildx build --platform linux/amd64,linux/arm64 -t REGISTRY/perennial:0.1.0 --push .
#
# Untested where this was written: there was no daemon. The second platform needs QEMU or a builder of its own.
FROM rust:1.95-bookworm AS build
# The toolchain that is there, without the components that only developers need.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /perennial
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/perennial/target,sharing=locked \
    mkdir -p /root-of-image/usr/bin /root-of-image/etc/ssl/certs && \
    install -m 0755 "$(dev/image/binary)" /root-of-image/usr/bin/perennial && \
    cat /usr/share/ca-certificates/mozilla/*.crt > /root-of-image/etc/ssl/certs/ca-certificates.crt

FROM scratch
ARG REVISION=unknown
LABEL org.opencontainers.image.title="perennial" \
      org.opencontainers.image.description="Remembers what a Kubernetes cluster forgets about its nodes" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /root-of-image/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/perennial"]
