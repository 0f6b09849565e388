// Package manageddisk has the behaviour of managed disks and snapshots, and of the data disks of a machine. Layer L2.
package manageddisk

import "kaz/internal/localazure/behaviour"

// Types returns the resource types of this package.
func Types() []behaviour.Type { return []behaviour.Type{disks(), snapshots()} }
