// Package arm is the one client of Azure Resource Manager: every read and write of
// every component goes through a [Client], which brings identity, retries, the
// shared request [Budget], waiting for long-running operations, metrics and one
// debug line per request. Layer L2.
//
// A client speaks documents and ids only, so one client serves every type; the
// api-version of each type, and all else that types differ in, is one table (package types).
//
// Waiting for long-running operations is our own (wait.go) and not azcore's
// poller, for three reasons. Where Azure names no time, azcore waits a constant
// one, while most network writes end within a second and disks within ten, so a
// growing wait is both faster and politer. Polls are requests like any other and
// must pass the budget. And azcore follows a polling URL to any host, with the
// token.
package arm
