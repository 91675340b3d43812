/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* As small as it goes: preemption, priorities, no tick (the benchmark never starts it), no checks. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#define configUSE_PREEMPTION			     1
#define configUSE_PORT_OPTIMISED_TASK_SELECTION	     1
#define configCPU_CLOCK_HZ			     25000000
#define configTICK_RATE_HZ			     1000
#define configTICK_TYPE_WIDTH_IN_BITS		     TICK_TYPE_WIDTH_32_BITS
#define configMAX_PRIORITIES			     5
#define configMINIMAL_STACK_SIZE		     128
#define configUSE_IDLE_HOOK			     0
#define configUSE_TICK_HOOK			     0
#define configSUPPORT_STATIC_ALLOCATION		     0
#define configSUPPORT_DYNAMIC_ALLOCATION	     1
#define configTOTAL_HEAP_SIZE			     16384
#define configUSE_TASK_NOTIFICATIONS		     1
#define configCHECK_FOR_STACK_OVERFLOW		     0
#define configKERNEL_INTERRUPT_PRIORITY		     255
#define configMAX_SYSCALL_INTERRUPT_PRIORITY	     191
#define configCHECK_HANDLER_INSTALLATION	     0
#define INCLUDE_vTaskSuspend			     1
#define vPortSVCHandler				     svc_entry
#define xPortPendSVHandler			     switch_entry
#endif
