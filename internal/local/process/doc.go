// Package process runs the child processes of a local cluster and leaves none of them behind. Layer L4.
//
// A [Group] owns the processes of one directory. Each child gets a log file of its own, a process group of its own and
// a record in the run folder (pid and the kernel's start time of that pid). On Linux the kernel also kills a child when
// the program that started it dies. What a killed program left all the same is found by these records and stopped by
// the next [Open] or by [StopRecorded]; a pid that now belongs to another program is never touched.
package process
