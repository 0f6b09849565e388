// Package file is the CSI driver of Azure Files. Its controller creates storage accounts and shares, snapshots and copies of
// shares; volumes are mounted by package node. Layer L3.
package file
