#!/bin/sh
# In the guest of ./others: WHAT is measured, `overhead`, `amounts`, or `disk` with the argument that libata gets.
# shellcheck source=../../tests/vm/lib.sh
. ./lib.sh
what=$1
reserve() { # WAY BUDGET
	tierce ctl set "for-$1" --budget "$2" --period 20ms >/dev/null || exit
}
# point NAME TIME: what a process gets of the reservation `rez`, as it sees it, and what each CPU lost meanwhile
point() {
	from=$(tierce ctl list --json | tr -d '\n')
	read=$(awk '{ print $3 }' /sys/block/sda/stat 2>/dev/null)
	service=$(meter service --name for-rez --period 20ms --time "$2" --gap 3us --segments "/out/$1.csv")
	say "$1" "{\"service\":$service,\"sectors\":$(($(awk '{ print $3 }' /sys/block/sda/stat 2>/dev/null || echo 0) - ${read:-0})),\"from\":$from,\"until\":$(tierce ctl list --json | tr -d '\n')}"
}

begin stolen plan.toml --stats counts || exit
case $what in
overhead) # work of a process in the reservation and of one below it, by the way to charge; three times, as the kernel's threads take some
	for try in 1 2 3; do
		for way in rez rez-c rez-fb; do
			reserve "$way" 4ms
			at=$(in_ms 800)
			meter spin --name "for-$way" --start "$at" --time 4s >/tmp/reserved &
			reserved=$!
			meter spin --name below --start "$at" --time 4s >/tmp/below &
			below=$!
			sleep 0.5
			kill -STOP "$loader"
			wait $reserved $below
			kill -CONT "$loader"
			say "$way-$try" "[$(cat /tmp/reserved),$(cat /tmp/below)]"
			reserve "$way" 1ms
		done
	done
	;;
amounts) # a TCP stream from CPU 1, whose packets CPU 0 receives; who reads it is below the reservation, too
	ip link set lo up
	ip link set lo mtu 1500
	mkfifo /tmp/never # an input without an end
	echo 1 >/sys/class/net/lo/queues/rx-0/rps_cpus
	echo 4096 65536 65536 >/proc/sys/net/ipv4/tcp_rmem
	taskset -c 0 sha256sum /dev/zero &
	busy=$!
	for amount in 1 2 4 6 8 10; do
		reserve rez ${amount}ms
		point "idle-$amount" 500ms
		taskset -c 0 nc -l -p 5000 <>/tmp/never >/dev/null &
		reader=$!
		sleep 0.3
		taskset -c 1 nc 127.0.0.1 5000 </dev/zero &
		sender=$!
		sleep 0.3
		point "stream-$amount" 500ms
		kill $sender $reader
	done
	kill $busy
	;;
disk) # read from end to end, again and again
	for module in scsi_common scsi_mod libata ata_piix sd_mod; do
		# shellcheck disable=SC2046 # a word, or none
		insmod $module.ko $([ $module != libata ] || echo "$2") || exit
	done
	until [ -e /dev/sda ]; do sleep 0.1; done
	reserve rez 4ms
	sha256sum /dev/zero &
	busy=$!
	point idle 3s
	while :; do dd if=/dev/sda of=/dev/null bs=128k iflag=direct 2>/dev/null; done &
	reader=$!
	sleep 0.3
	point disk 3s
	kill $reader $busy
	;;
esac
finish TERM
