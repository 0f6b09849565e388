// Package explain says of a volume where it is, what it waits for, and what Azure said. Layer L3.
//
// [Gather] reads the facts from Kubernetes and Azure. [Facts.Explain] decides, and reads nothing.
package explain
