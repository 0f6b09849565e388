// Package arm is the one client of Azure Resource Manager. Every read and write of every component goes through a
// [Client]. It adds identity, retries, the shared request [Budget], waits for long-running operations, metrics and
// one debug line per request. Layer L2.
//
// A client handles documents and ids only, so one client serves every type. The api-version of each type, and all
// else in which types differ, is in one table (package types).
//
// The client waits for long-running operations itself (wait.go), without azcore's poller, for three reasons. Where
// Azure names no time, azcore waits a constant time. But most network writes end within a second and disks within
// ten, so a growing wait is faster and sends fewer polls. Polls are requests like any other and must pass the budget.
// And azcore follows a polling URL to any host, with the token.
package arm
