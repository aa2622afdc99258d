# Builds programs from their Go modules, once for all checkouts. Sourced by the `build` scripts beside the modules.
#
# The caller stands in the folder with go.mod and go.sum, which pin everything (folders below may hold modules of their
# own), and sets:
#   NAME      what is built, as people call it: messages, the folder in the cache and the make target bear it
#   OVERRIDE  the environment variable that may name a folder to use instead, in which nothing is built
#   NEEDED_BY what needs the Go version, for the message when it is too old
#   TOOLS     what to build: each the binary's name, then its package, then the folder of the module if it is below
#   FLAGS     for `go build`
#   ALSO      if there are any: files besides the modules' own that decide what comes out
# Then it calls `build_tools "$@"`. A function `finish FOLDER`, if it has one, adds to what was built.
#
# Binaries go to ${XDG_CACHE_HOME:-~/.cache}/perennial/NAME/KEY. KEY is a hash of all that decides what comes out, so
# checkouts that pin the same versions share one build, and others do not disturb it.

ALSO=()
finish() { :; }

usage() {
  cat <<'USAGE'
usage: build [--print-dir] [--no-build]
  --print-dir  print the folder with the binaries on stdout
  --no-build   build nothing; fail with status 3 if they are not there yet
USAGE
}

say() { printf '%s: %s\n' "$NAME" "$*" >&2; }
die() { say "$*"; exit 1; }

# Names the first tool that a folder lacks; succeeds with no output when it has them all.
missing_in() {
  local tool
  for tool in "${TOOLS[@]}"; do
    [[ -x "$1/${tool%% *}" ]] || { echo "${tool%% *}"; return; }
  done
}

# Go refuses a module that asks for a newer Go only in the middle of its work, and in many words.
require_go() {
  command -v go >/dev/null || die "Go is missing: install Go $GO_WANTED or later (https://go.dev/dl)"
  local have
  have=$(go env GOVERSION 2>/dev/null) || have=$(go version | cut -d' ' -f3)
  have=${have#go}
  [[ $(printf '%s\n' "$GO_WANTED" "${have%% *}" | sort -V | head -n1) == "$GO_WANTED" ]] ||
    die "Go $have is too old: $NEEDED_BY needs Go $GO_WANTED or later (https://go.dev/dl)"
}

# Runs a command and tells how long it has been at it: in place on a terminal, a line now and then elsewhere.
with_progress() {
  local what=$1 log=$2 started=$SECONDS told=0 elapsed pid
  shift 2
  "$@" >"$log" 2>&1 &
  pid=$!
  trap 'kill "$pid" 2>/dev/null || true' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  [[ -t 2 ]] || say "$what"
  while kill -0 "$pid" 2>/dev/null; do
    elapsed=$((SECONDS - started))
    if [[ -t 2 ]]; then
      printf '\r\033[K%s: %s, %ds' "$NAME" "$what" "$elapsed" >&2
    elif ((elapsed >= told + 15)); then
      told=$elapsed
      say "$what, ${elapsed}s"
    fi
    sleep 0.2
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  if ! wait "$pid"; then
    trap - EXIT INT TERM
    tail -n 40 "$log" >&2
    return 1
  fi
  trap - EXIT INT TERM
  say "$what: done in $((SECONDS - started))s"
}

# The modules here and in the folders below.
modules() { find . -name go.mod -printf '%h\n' | LC_ALL=C sort; }

download() {
  local module
  for module in $(modules); do go -C "$module" mod download || return; done
}

# All that decides what comes out, besides the tools and flags.
sources() {
  find . \( -name go.mod -o -name go.sum -o -name '*.go' \) -print0 | LC_ALL=C sort -z | xargs -0 cat
  [[ ${#ALSO[@]} == 0 ]] || cat "${ALSO[@]}"
}

build_into() {
  local out=$1 tool name package module number=0
  with_progress "downloading sources" "$out/download.log" download || die "the Go modules could not be downloaded"
  for tool in "${TOOLS[@]}"; do
    read -r name package module <<<"$tool"
    number=$((number + 1))
    with_progress "building $name ($number of ${#TOOLS[@]})" "$out/$name.log" \
      go -C "${module:-.}" build "${FLAGS[@]}" -o "$out/$name" "$package" || die "$name could not be built"
  done
  rm -f "$out"/*.log
  finish "$out"
}

# Uses the folder that OVERRIDE names, if it names one.
overridden() {
  local folder=${!OVERRIDE:-} lacking
  [[ -n $folder ]] || return 1
  [[ -d $folder ]] || die "$OVERRIDE names $folder, which is not a folder"
  lacking=$(missing_in "$folder")
  [[ -z $lacking ]] || die "$OVERRIDE names $folder, which has no $lacking"
  dir=$folder
}

# Finds what was built before, or builds it.
cached() {
  local key cache temporary
  GO_WANTED=$(modules | sed 's|$|/go.mod|' | xargs awk '$1 == "go" { print $2 }' | sort -V | tail -n1)
  key=$({ sources; printf '%s\n' "${FLAGS[@]}" "${TOOLS[@]}"; uname -sm; } | sha256sum | cut -c1-16)
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/perennial/$NAME
  dir=$cache/$key
  [[ ! -d $dir ]] || return 0
  if ! $1; then
    say "not built yet: run make $NAME"
    exit 3
  fi
  require_go
  mkdir -p "$cache"
  # One build at a time for each key; whoever waited finds it done.
  exec 9>"$cache/$key.lock"
  if ! flock -n 9; then
    say "another build is under way, waiting for it"
    flock 9
  fi
  [[ ! -d $dir ]] || return 0
  rm -rf "$cache/$key".tmp.*
  temporary=$(mktemp -d "$cache/$key.tmp.XXXXXX")
  # The lock stays with this script: a compiler that outlives it must not hold up the next build.
  build_into "$temporary" 9>&-
  chmod 755 "$temporary"
  mv -T "$temporary" "$dir"
}

build_tools() {
  local print_dir=false build=true argument dir
  for argument in "$@"; do
    case $argument in
      --print-dir) print_dir=true ;;
      --no-build) build=false ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; exit 2 ;;
    esac
  done
  overridden || cached "$build"
  if $print_dir; then echo "$dir"; fi
}
