#!/bin/sh
# Debian's xdg-desktop-portal on the session bus of alice, and the manager in the place of RealtimeKit, one CPU, one boot. A program of hers asks
# the portal for its threads, and the portal asks the manager: first a program as it is, then one in a sandbox, where processes and threads have
# other numbers. See crates/tierce-cli/tests/dbus_boots.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

printf 'messagebus:x:100:100::/:/bin/false\nalice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n' >>/etc/passwd
export XDG_RUNTIME_DIR=/run/user/1001 XDG_DATA_HOME=/run/user/1001/data
export DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1001/bus
instance=$XDG_RUNTIME_DIR/.flatpak/7
mkdir -p /run/dbus /var $instance
chown -R 1001:1001 $XDG_RUNTIME_DIR
ln -s /run /var/run
chmod 1777 /tmp
dbus-daemon --system || exit
begin plan manager.toml || exit
: >/out/manager.err
tierce-manager --config pipewire-manager.toml --books /out/books.json 2>/out/manager.err &
manager=$!
awaits grep -q 'answers as' /out/manager.err

# of_alice COMMAND: what her session runs
of_alice() {
	su alice -c "exec $1" &
	session="$session $!"
}
session=
of_alice "dbus-daemon --session --nofork --address=$DBUS_SESSION_BUS_ADDRESS" 2>/out/session.log
awaits test -e $XDG_RUNTIME_DIR/bus
of_alice xdg-permission-store >/out/store.log 2>&1
of_alice "xdg-desktop-portal -v" >/out/portal.log 2>&1
su alice -c 'gdbus wait --session --timeout 60 org.freedesktop.portal.Desktop' || exit
su bob -c 'exec meter spin --name foreign --time 3000s' >/dev/null &
foreign=$!

# report NAME: what the program was answered, the numbers of its thread outside of a sandbox, and what it has
report() {
	awaits test -e "/tmp/$1.ready"
	say "$1" "$(cat "/tmp/$1.ready")"
	say "$1-thread" "$(grep -lx with-deadlines /proc/[0-9]*/task/*/comm | cut -d/ -f5)"
	say "$1-requests" "$(tierce request --list --json)"
	say "$1-status" "$(tierce status --json | tr -d '\n')"
	touch "/tmp/$1.go"
}
# gone NAME: after the program has ended
gone() {
	sleep 1
	say "$1-gone" "$(tierce request --list --json)"
}
su alice -c "PORTAL=/tmp/plain FOREIGN=$foreign exec ./clients --exact portal_client" >/out/plain.log 2>&1 &
client=$!
report plain
wait $client
say plain-end $?
gone plain

# A sandbox as far as the portal looks at it: a root with .flatpak-info, numbers of processes of its own, and which these are in the folder of
# the instance, as Flatpak writes it.
mkdir /sandbox
mount -t tmpfs sandbox /sandbox
for folder in /*; do
	if [ -L "$folder" ]; then
		cp -d "$folder" /sandbox
	elif [ -d "$folder" ] && [ "$folder" != /sandbox ]; then
		mkdir "/sandbox$folder"
		mount --rbind "$folder" "/sandbox$folder"
	fi
done
printf '[Application]\nname=org.example.Player\n\n[Instance]\ninstance-id=7\n' >/sandbox/.flatpak-info
cat >/sandbox/enter <<-'ENTER'
	until [ -s "$INSTANCE/bwrapinfo.json" ]; do sleep 0.1; done
	cd /guest && exec su alice -c 'PORTAL=/tmp/sandbox exec ./clients --exact portal_client'
ENTER
INSTANCE=$instance FOREIGN=$foreign unshare -p -f chroot /sandbox sh /enter >/out/sandbox.log 2>&1 &
client=$!
inside() {
	inside=$(cat /proc/$client/task/$client/children)
	inside=${inside%% *}
	[ "$inside" ] && grep -q enter "/proc/$inside/cmdline"
}
awaits inside
printf '{"pid-namespace": %s}' "$(readlink "/proc/$inside/ns/pid" | tr -dc 0-9)" >$instance/bwrapinfo.json
report sandbox
wait $client
say sandbox-end $?
gone sandbox

# shellcheck disable=SC2086 # a list
kill "$foreign" "$manager" $session
wait "$manager"
finish TERM
