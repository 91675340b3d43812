#!/bin/sh
# In the machine: a bus, a plan in force, the manager with a rule, and one who asks. See run.
# shellcheck source-path=SCRIPTDIR/../../tests/vm
. ./lib.sh
printf 'messagebus:x:100:100::/:/bin/false\n' >>/etc/passwd
mkdir -p /run/dbus /var
ln -s /run /var/run
dbus-daemon --system || exit
begin plan pipewire.toml || exit
: >/out/manager.err
tierce-manager --rule most-important-first --books /out/books.json 2>/out/manager.err &
manager=$!
until grep -q 'answers as' /out/manager.err; do sleep 0.2; done
meter spin --name asked --time 1000s >/dev/null &
asked=$!
sleep 1
kill -STOP $asked # or what it gets would be part of the times
./ask $asked "$ROUNDS" $manager
kill -KILL $asked
kill $manager
finish TERM >/dev/null
