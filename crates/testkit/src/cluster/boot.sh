# The first process of a machine, in namespaces of its own.
#
# usage: sh boot.sh FOLDER NAME
set -e
# This /proc is still the host's: by it the host knows us.
read -r stat </proc/self/stat
mount -t proc proc /proc
# What containers mount is seen in all of the machine, and nowhere else.
mount --make-rshared /
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/lock
mount --bind "$1/lib" /var/lib
mount --bind "$1/log" /var/log
[ ! -e /etc/machine-id ] || mount --bind "$1/machine-id" /etc/machine-id
hostname "$2"
ulimit -n "$(ulimit -Hn)"
echo "$stat" >"$1/init.new"
mv "$1/init.new" "$1/init"
# Starts what is in the folder and starts it again when it ends; buries what dies without a parent.
exec runsvdir "$1/services"
