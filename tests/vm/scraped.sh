#!/bin/sh
# A Prometheus scrapes a plan in force while it is changed, and then answers queries. See crates/tierce-cli/tests/metrics.rs.
# shellcheck source-path=SCRIPTDIR
. ./lib.sh

web=127.0.0.1:9090

# ask PATH: Prometheus's answer
ask() {
	wget -q -O - "http://$web/api/v1/$1"
}

# scrapes N: wait until there are N more of them
scrapes() {
	from=$(scraped)
	until [ "$(scraped)" -ge "$((from + $1))" ]; do
		sleep 0.2
	done
}
scraped() {
	wget -q -O - "http://$web/metrics" | awk '/^prometheus_target_interval_length_seconds_count/ { n = $2 } END { print n + 0 }'
}

begin scraped desktop.toml --metrics 9464 || exit
meter service --name audio --budget 2ms --time 1000s >/dev/null &
meters=$!
meter cyclic --name video --interval 33ms --time 1000s >/dev/null &
meters="$meters $!"
meter cyclic --name runaway --interval 50ms --time 1000s >/dev/null &
meters="$meters $!"

cat >prometheus.yml <<END
global: { scrape_interval: 500ms, evaluation_interval: 500ms }
rule_files: [tierce.rules.yml]
scrape_configs: [{ job_name: tierce, static_configs: [{ targets: ["127.0.0.1:9464"] }] }]
END
prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=$web 2>/out/prometheus.log &
prometheus=$!
until ask 'query?query=up' >/dev/null 2>&1; do
	sleep 0.5
done
scrapes 4

# A budget grows, a task goes and comes back, another kernel object takes over.
sed 's/budget = "2ms", period = "10ms"/budget = "3ms", period = "10ms"/' desktop.toml >grown.toml
sed '/^\[task.runaway\]/,/^match/d' grown.toml >less.toml
cat desktop.toml - >more.toml <<END
[node.turns]
policy = "round-robin"
under.desktop = { weight = 100 }
[tasks.extra]
under.turns = {}
match = { comm = "extra" }
END
apply grown grown.toml
scrapes 3
apply less less.toml
scrapes 3
apply again desktop.toml
scrapes 3
apply more more.toml --reload
scrapes 4

number=0
while read -r query; do
	say "query-$number" "$(ask "query?query=$query")"
	number=$((number + 1))
done <queries
say rules "$(ask rules)"
# shellcheck disable=SC2086 # a list
kill $meters $prometheus
finish TERM
