// Package podcidr decides which range of a cluster's pod addresses a node gets.
// Layer L1: decisions only.
//
// A [Pool] gives blocks of any sizes out of one range; a [Ledger] remembers which
// node holds which blocks of the cluster's ranges; [Sizes] reads from Azure's tags
// how large a node's blocks are to be.
package podcidr
