// Package podcidr assigns pod CIDRs to nodes. Layer L1: decisions only.
//
// A [Pool] allocates blocks of any size in one range. A [Ledger] records which node holds which
// blocks of the cluster's ranges. [Sizes] reads the sizes of a node's blocks from Azure tags.
package podcidr
