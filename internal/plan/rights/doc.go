// Package rights lists the Azure actions that the programs need, with their scopes and purposes, and
// compares them with granted permissions. Layer L1: decisions only.
//
// The table is the single source: programs check it at their start, and the role definitions are
// generated from it.
package rights
