#!/bin/sh
# Grants and revocations, and a manager that is killed. See bench/grants/run.
# shellcheck source-path=SCRIPTDIR/../../tests/vm
. ./lib.sh

printf 'alice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\ncarol:x:1003:1003::/:/bin/sh\n' >>/etc/passwd
begin run plan.toml || exit
tierce-manager --books /out/books.json --rule limit-per-user --rule most-important-first 2>/out/manager.err &
manager=$!
sleep 2
say churn "$(TIERCE_SEED=2 ./grants churn /out/books.json 100 "$1" 100 | tail -n 1)"
kill $manager
wait $manager
rm -f /out/books.json
sleep 1
say restarts "$(./grants restarts /out/books.json "$2" tierce-manager --books /out/books.json --rule limit-per-user | tail -n 1)"
finish TERM
