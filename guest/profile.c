/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A plugin of QEMU, for `tierce vm --profile`: how often each instruction of the guest was executed between the marks of
 * guest/profile.h, as text, a line per instruction: address, count, bytes, disassembly.
 *
 * Outside the marks only the marks themselves are looked for, at translation, so the guest runs at full speed. A mark makes
 * QEMU translate everything anew (qemu_plugin_reset): between the marks each instruction then has an addition in front of
 * it. That is exact, where a count per block would be wrong by what follows a fault. The guest can't tell: an addition of
 * ours is none of its instructions, and its time is counted in its own.
 *
 * Use: -plugin file=THIS,out=FILE. Needs version 3 of the interface (QEMU 9.1). Its functions are declared here, because
 * the header is seldom installed. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

/* --- the interface, as far as it is used ------------------------------------------------------------------------- */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard; /* an element for each virtual CPU */

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

enum { QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_INLINE_ADD_U64 = 0, INTERFACE_VERSION = 3 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *into, size_t room);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *, unsigned cpu);
int qemu_plugin_num_vcpus(void);
void qemu_plugin_reset(qemu_plugin_id_t, void (*done)(qemu_plugin_id_t));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned cpu, void *), int flags, void *);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *, int operation, qemu_plugin_u64,
							 uint64_t operand);

#define EXPORT __attribute__((visibility("default")))
EXPORT extern int qemu_plugin_version;
int qemu_plugin_version = INTERFACE_VERSION;

/* --- instructions ------------------------------------------------------------------------------------------------ */

enum { INSNS_MAX = 1 << 20, SLOTS = INSNS_MAX * 2, BYTES_MAX = 15 };

/* Instruction 0 stands for all that find no place. */
static struct insn {
	uint64_t address;
	uint8_t size, bytes[BYTES_MAX];
	char *text;
} insns[INSNS_MAX];
static uint32_t insns_n = 1, slots[SLOTS];
static struct qemu_plugin_scoreboard *counts;
static bool open;
static const char *out;
static qemu_plugin_id_t myself;

/* The number of an instruction. The same address with other bytes is another one: programs come and go. */
static uint32_t number_of(struct qemu_plugin_insn *insn)
{
	struct insn new = {.address = qemu_plugin_insn_vaddr(insn)};
	new.size = (uint8_t)qemu_plugin_insn_data(insn, new.bytes, BYTES_MAX);
	uint64_t slot = new.address * 0x9e3779b97f4a7c15u >> 43; /* 21 bits: SLOTS */
	for (; slots[slot]; slot = (slot + 1) % SLOTS) {
		struct insn *old = &insns[slots[slot]];
		if (old->address == new.address && old->size == new.size && !memcmp(old->bytes, new.bytes, new.size))
			return slots[slot];
	}
	if (insns_n == INSNS_MAX)
		return 0;
	new.text = qemu_plugin_insn_disas(insn);
	insns[insns_n] = new;
	return slots[slot] = insns_n++;
}

/* The number in a mark, 0 if it is none. */
static uint32_t mark_of(const struct qemu_plugin_insn *insn)
{
	static const uint8_t nop[] = {0x0f, 0x1f, 0x84, 0x00};
	uint8_t bytes[8];
	uint32_t number;
	if (qemu_plugin_insn_data(insn, bytes, sizeof bytes) != sizeof bytes || memcmp(bytes, nop, sizeof nop))
		return 0;
	memcpy(&number, bytes + sizeof nop, sizeof number);
	return number == PROFILE_BEGIN || number == PROFILE_END ? number : 0;
}

/* --- what QEMU calls --------------------------------------------------------------------------------------------- */

static void registered(qemu_plugin_id_t id);

static void marked(unsigned cpu, void *begin)
{
	(void)cpu;
	if (open == (begin != NULL))
		return;
	open = !open;
	qemu_plugin_reset(myself, registered);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	(void)id;
	for (size_t i = 0, n = qemu_plugin_tb_n_insns(block); i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		uint32_t mark = mark_of(insn);
		if (mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, QEMU_PLUGIN_CB_NO_REGS,
							       mark == PROFILE_BEGIN ? &open : NULL);
		if (open)
			qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			    insn, QEMU_PLUGIN_INLINE_ADD_U64, (qemu_plugin_u64){counts, number_of(insn) * sizeof(uint64_t)}, 1);
	}
}

static void ended(qemu_plugin_id_t id, void *data)
{
	FILE *file = fopen(out, "w");
	(void)id, (void)data;
	if (!file) {
		perror(out);
		return;
	}
	for (uint32_t i = 0; i < insns_n; i++) {
		uint64_t count = 0;
		for (int cpu = 0; cpu < qemu_plugin_num_vcpus(); cpu++)
			count += ((uint64_t *)qemu_plugin_scoreboard_find(counts, (unsigned)cpu))[i];
		if (!count)
			continue;
		fprintf(file, "%" PRIx64 " %" PRIu64 " ", insns[i].address, count);
		for (int byte = 0; byte < insns[i].size; byte++)
			fprintf(file, "%02x", insns[i].bytes[byte]);
		fprintf(file, " %s\n", insns[i].text ? insns[i].text : "");
	}
	fputs("end\n", file);
	fclose(file);
}

static void registered(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fputs("profile: expected out=FILE\n", stderr);
		return 1;
	}
	myself = id;
	out = strdup(argv[0] + 4);
	counts = qemu_plugin_scoreboard_new(INSNS_MAX * sizeof(uint64_t));
	registered(id);
	return 0;
}
