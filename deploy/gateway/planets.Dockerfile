# The subgraphs of the example, as a user without rights.
FROM rust:1.95-slim AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package planets --bin planets

FROM debian:trixie-slim
COPY --from=build /source/target/release/planets /usr/local/bin/planets
USER 65534:65534
EXPOSE 4001
ENTRYPOINT ["/usr/local/bin/planets", "--listen", "0.0.0.0:4001"]
