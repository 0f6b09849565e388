// Package process runs the child processes of a local cluster and leaves none of them behind. Layer L4.
//
// A [Group] owns the processes of one directory. Each child has its own log file, its own process group and a record in
// the run directory with its pid and start time. On Linux the kernel kills a child when the program that started it dies.
// The next [Open], or [StopRecorded], finds the remaining children of a killed program by their records and stops them. It
// never signals another program that has the same pid now.
package process
