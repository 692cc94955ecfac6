# Packages of another release of Debian, with nothing of this machine's apt: sourced by set-ups that unpack what they do not install.
# shellcheck shell=bash

# fetch_packages RELEASE WORK PACKAGES...: downloads them into the folder WORK/debs, which is made anew.
fetch_packages() {
  local release=$1 work=$2 options
  shift 2
  rm -rf "$work/debs"
  mkdir -p "$work/debs" "$work/$release.lists/partial" "$work/$release.cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" >"$work/$release.list"
  options=(-qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$work/$release.list" -o Dir::Etc::SourceParts=-
    -o Dir::State::Lists="$work/$release.lists" -o Dir::Cache="$work/$release.cache")
  (cd "$work/debs" && apt-get "${options[@]}" update && apt-get "${options[@]}" download "$@")
}
