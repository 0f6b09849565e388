// Package explain says what the service controller would do, and why. Layer L3: it reads the same
// decision as a commit, and writes nothing.
//
// [Inspector] is for kaz explain, [Services] for the controller's dry run, and [Advice] says what
// a user can do about a refusal of Azure.
package explain
