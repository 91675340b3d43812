#!/bin/sh
# Grants and revocations, and a manager that is killed. See bench/grants/run.
# shellcheck source-path=SCRIPTDIR/../../tests/vm
. ./lib.sh

printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\ncarol:x:1003:1003::/:/bin/sh\n' >>/etc/passwd
begin run plan.toml || exit
cat >rules.toml <<EOF
[[rule]]
name = "limit-per-user"
[[rule]]
name = "most-important-first"
parameters = { everybody = true, grace_ms = 0 }
EOF
tierce-manager --books /out/books.json --config rules.toml 2>/out/manager.err &
manager=$!
sleep 2
say churn "$(TIERCE_SEED=2 ./grants churn /out/books.json 100 "$1" 100 | tail -n 1)"
kill $manager
wait $manager
rm -f /out/books.json
sleep 1
finish TERM

# A profile of the vendor, one of the system, and a rule: nobody may touch them.
mkdir -p /etc/tierce/profiles /var/lib/tierce/profiles
cp ./*.toml /etc/tierce/profiles
cp ./*.toml /var/lib/tierce/profiles
echo 'fn new_request(it) { }' >/etc/tierce/own.rhai
kept() {
	find /etc/tierce /var/lib/tierce/profiles -type f | sort | while read -r file; do
		echo "$file"
		cat "$file"
	done
}
kept >/tmp/before
say restarts "$(./grants restarts /out/books.json "$2" "$3" plan.toml \
	tierce-manager --books /out/books.json --rule limit-per-user --rule /etc/tierce/own.rhai | tail -n 1)"
kept | cmp - /tmp/before
say kept "{\"code\":$?,\"lines\":$(kept | wc -l),\"state\":\"$(cat /sys/kernel/sched_ext/state)\"}"
