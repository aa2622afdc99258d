#!/usr/bin/env bash
# Installs the .deb on a copy of this machine and runs what its unit starts, under the unit's user and limits.
#
# The copy is a layer in memory over the machine's own files, in namespaces for mounts and processes: nothing has to be removed
# afterwards, and all of it ends with the first process. There is no systemd in it, so what that would do is done by hand.
#
# usage: unshare --mount --pid --fork --kill-child --propagation private host.sh FOLDER DEB KUBECONFIG SETTING…
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
folder=$1 deb=$2 kubeconfig=$3
shift 3

say() { printf 'host: %s\n' "$*"; }
die() { say "$*"; exit 1; }

mount -t tmpfs none "$folder"
root=$folder/root
mkdir "$folder"/{upper,work,root}
mount -t overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" none "$root"
mount -t proc none "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/tmp"
inside() { chroot "$root" "$@"; }

cp "$deb" "$root/tmp/perennial.deb"
inside dpkg --force-confnew --install /tmp/perennial.deb
unit=$(inside dpkg --listfiles perennial | grep '/perennial\.service$')
for command in perennial kubectl-perennial; do
  version=$(inside "$command" --version) || die "$command does not start"
done
say "dpkg --install: $version, $(inside dpkg --listfiles perennial | wc -l) files and folders"

# What systemd-analyze calls 0.0 to 10.0, in tenths.
MOST_EXPOSED=15
if inside sh -c 'command -v systemd-analyze' >/dev/null; then
  told=$(inside systemd-analyze verify --man=no "$unit" 2>&1) || die "systemd-analyze verify: $told"
  [[ -z $told ]] || die "systemd-analyze verify: $told"
  told=$(inside systemd-analyze security --offline=true --no-pager --threshold="$MOST_EXPOSED" "$unit" 2>&1) ||
    die "systemd-analyze security: $told"
  say "systemd-analyze verify has nothing to say, security: $(tail -n1 <<<"$told" | sed 's/.*: //')"
else
  say "SKIPPED: systemd-analyze is not here (Debian package systemd)"
fi

# What an administrator does.
install -m 0600 "$kubeconfig" "$root/etc/perennial/kubeconfig"
printf '%s\n' "$@" >>"$root/etc/perennial/perennial.env"

# What systemd does: a user that nobody else is, a credential that only it can read, limits, a root that cannot be written to.
setting() { sed -n "s/^$1=//p" "$root$unit"; }
user=61999
credentials=/run/credentials/perennial.service
mkdir -p "$root$credentials"
install -m 0400 -o "$user" "$root/$(setting LoadCredential | cut -d: -f2)" "$root$credentials/kubeconfig"
chown "$user" "$root$credentials"
chmod 0500 "$root$credentials"
mapfile -t environment < <(grep -v -e '^#' -e '^$' "$root$(setting EnvironmentFile | sed 's/^-//')")
# shellcheck disable=SC2016 # The unit's own variable, as it is written there.
read -ra command <<<"$(setting ExecStart | sed "s|\${CREDENTIALS_DIRECTORY}|$credentials|")"
# Not even every root may raise a limit.
files=$(setting LimitNOFILE) most=$(ulimit -H -n)
[[ $most == unlimited ]] || ((files <= most)) || files=$most
umask "$(setting UMask)"
mount --rbind "$root" "$root"
mount -o remount,bind,ro "$root"
say "ExecStart as user $user, $files files, no capabilities, a read-only root: ${command[*]}"
# Not in place of this shell: whose rights change no longer hears of its parent's death.
chroot "$root" prlimit --nofile="$files" -- \
  setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all -- \
  env -i "CREDENTIALS_DIRECTORY=$credentials" "${environment[@]}" "${command[@]}"
