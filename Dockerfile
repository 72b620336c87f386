# Builds fusee and packs it with what tasks usually need. Run it with the project mounted:
#   docker build -t fusee .
#   docker run --rm -it -v "$PWD:/work" -e OPENAI_API_KEY fusee run -m openai:MODEL 'fix the failing test'
#
# Docker's default seccomp profile forbids user namespaces, so commands are confined by Landlock inside the container,
# if the host's kernel has it; `docker run … fusee doctor --quick` prints what works.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
ARG FUSEE_COMMIT
ENV FUSEE_COMMIT=${FUSEE_COMMIT}
RUN cargo build --release --locked --package fusee-cli --features restate

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home fusee
COPY --from=build /src/target/release/fusee /usr/local/bin/fusee
USER fusee
WORKDIR /work
ENTRYPOINT ["fusee"]
CMD ["--help"]
