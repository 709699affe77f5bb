# shellcheck shell=bash disable=SC2154
# What docker/prove and config/package/image share: an image by the recipe, docker/Dockerfile, without a Docker engine.
# The one who sources this has `work`, a folder that is root's, and stands at the top of the project.

mill_buildah() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }

# make_base NAME: a bare Debian 12 as the image that the recipe names as its base.
make_base() {
  local name=$1 container
  [[ -x $work/root/bin/bash ]] || debootstrap --variant=minbase bookworm "$work/root" ${MIRROR:+"$MIRROR"} >"$work/debootstrap.log"
  rm -rf "$work/root/var/cache/apt/archives"/*.deb
  container=$(mill_buildah from scratch)
  mill_buildah add --quiet "$container" "$work/root" / >/dev/null
  mill_buildah config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  mill_buildah commit --quiet --rm "$container" "localhost/$name" >/dev/null
}

base_of_recipe() { sed -n 's/^ARG BASE=//p' docker/Dockerfile; }

# second_stage BIN CONTEXT: the recipe without its first stage, as CONTEXT/Dockerfile, for programs and modules that are built, in BIN.
second_stage() {
  local bin=$1 context=$2
  rm -rf "$context"
  mkdir -p "$context/build/bin"
  cp "$bin/tensormill" "$bin"/*.so "$context/build/bin/"
  strip --strip-debug "$context/build/bin"/*
  awk '/^FROM /{stage++} stage != 1' docker/Dockerfile | sed 's|^COPY --from=build /src/|COPY |' >"$context/Dockerfile"
}
