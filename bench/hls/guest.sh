#!/bin/sh
# In the guest of ./run: tables 10.1 to 10.5 and figures 10.1, 10.3 and 10.4 of Regehr 2001.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
loader=

# alone COMMAND...: what meter says while the loader, which looks around every 20 ms, is out of the way
alone() {
	"$@" --start "$(in_ms 800)" >/out/meter &
	meter=$!
	sleep 0.5
	[ -z "$loader" ] || kill -STOP "$loader"
	wait "$meter"
	[ -z "$loader" ] || kill -CONT "$loader"
	cat /out/meter
}
# change PLAN: what is in force
change() {
	if ! tierce apply "$1.toml" >"/out/$1.applied" 2>&1; then
		cat "/out/$1.applied"
		exit 1
	fi
}
# work NAME: of one and of ten, by how much memory each goes through
work() {
	for kb in 0 64 128 256 384 512 768 1024; do
		for n in 1 10; do
			memory=
			[ $kb = 0 ] || memory="--memory $((kb * 1024))"
			# shellcheck disable=SC2086 # two words, or none
			say "work-$1-$kb-$n" "$(alone meter hogs --name "$1" --count $n --time 2s $memory)"
		done
	done
}
# two NAME COUNT COMM TIME ONE...: what ONE, a meter, and COUNT processes called COMM, which never stop, get beside each other
two() {
	name=$1 count=$2 comm=$3 time=$4
	shift 4
	at=$(in_ms $((800 + count * 10)))
	echo null >/out/many
	meters=
	if [ "$count" != 0 ]; then
		meter hogs --name "$comm" --count "$count" --time "$time" --start "$at" >/out/many &
		meters=$!
	fi
	"$@" --time "$time" --start "$at" >/out/one &
	meters="$meters $!"
	sleep "$(awk -v n="$count" 'BEGIN { print 0.6 + n * 0.01 }')"
	kill -STOP "$loader"
	# shellcheck disable=SC2086 # a list
	wait $meters
	kill -CONT "$loader"
	say "$name" "[$(cat /out/one),$(cat /out/many)]"
}

# Table 10.2 and figure 10.1, then 10.4.
say turns-EEVDF "$(alone meter turns --count 10 --time 4s --segments /out/turns-EEVDF.csv)"
work EEVDF
begin turns turns.toml --policies all --stats counts || exit
for name in reservation round-robin time-sharing fair; do
	say "turns-$name" "$(alone meter turns --name $name --count 10 --time 4s --segments "/out/turns-$name.csv")"
done
work fair

# Table 10.3: what timers cost that end a budget and bring it back. The best of three: now and then a thread of the kernel comes between.
for plan in events-*.toml; do
	change "${plan%.toml}"
	for try in 1 2 3; do
		say "${plan%.toml}-$try" "$(alone meter spin --name spin --time 2s)"
	done
done

# Table 10.1, as one process asks for another.
change events-0
say socket "$(./control /run/tierce.sock)"

# Table 10.4: a process against many, as one level of processes and as two principals.
change isolation
for n in 1 4 16 64 256; do
	long=2s
	[ $n -lt 64 ] || long=10s # many rounds of all
	two "alone-$n" $n many $long meter spin --name alone
	two "principal-$n" "$n" other "$long" meter spin --name principal
done

# Table 10.5: a renderer beside 0, 1 and 10 processes that never stop.
change frames
for n in 0 1 10; do
	for app in hard soft high default low; do
		case $n$app in 0high | 0low) continue ;; esac
		two "frames-$app-$n" "$n" hog 10s meter frames --name $app --work 10ms --limit 33ms
	done
done
finish TERM

# Figure 10.3: a switch between two branches, each so many levels deep. With one level the root is another one.
for depth in 1 2 3 4 5 6 7 8; do
	case $depth in
	1 | 2) begin depth-$depth depth-$depth.toml --stats counts || exit ;;
	*) change depth-$depth ;;
	esac
	say depth-$depth "$(alone meter pingpong --count 4000 --name ping,pong)"
	case $depth in
	1 | 8) finish TERM ;;
	esac
done

# Table 10.1, what it costs without asking anybody.
say control "$(./control)"
