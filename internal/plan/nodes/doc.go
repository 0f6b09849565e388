// Package nodes describes nodes by the Azure documents of their machines: provider id, addresses,
// size, zone, and whether the machine exists and runs. Layer L1: pure functions of their arguments.
package nodes
