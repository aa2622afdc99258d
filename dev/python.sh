# Installs packages from PyPI into a virtual environment, once for all checkouts. Sourced by scripts that stand beside a
# requirements.txt, which pins every file by its hash.
#
# The caller stands in that folder and sets NAME, which is what is installed, as messages, the folder in the cache and the make
# target call it. Then `install_python` does so where it was not done before, and `dir` is the folder.
#
# The folder is ${XDG_CACHE_HOME:-~/.cache}/perennial/NAME/KEY. KEY is a hash of the requirements and of the Python that runs them.

say() { printf '%s: %s\n' "$NAME" "$*" >&2; }
die() { say "$*"; exit 1; }

install_python() {
  local key cache
  command -v python3 >/dev/null || die "python3 is missing: make $NAME installs it, or says how"
  python3 -c 'import ensurepip' 2>/dev/null || die "Python's venv is missing (Debian: python3-venv): make $NAME installs it"
  key=$({ cat requirements.txt; python3 -VV; python3 -c 'import sys; print(sys.executable)'; uname -sm; } | sha256sum | cut -c1-16)
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/perennial/$NAME
  dir=$cache/$key
  # A virtual environment knows its own address, so it is made in its place; the mark says that it is whole.
  [[ ! -e $dir/complete ]] || return 0
  mkdir -p "$cache"
  # One at a time; whoever waited finds it done.
  exec 9>"$cache/$key.lock"
  flock 9
  [[ ! -e $dir/complete ]] || return 0
  say "installing"
  rm -rf "$dir"
  python3 -m venv "$dir" 9>&-
  "$dir/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
    --requirement requirements.txt 9>&- || die "$NAME could not be installed from PyPI"
  touch "$dir/complete"
}
