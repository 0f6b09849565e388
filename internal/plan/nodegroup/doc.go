// Package nodegroup decides how scale sets serve as node groups of cluster-autoscaler: which scale sets are node groups,
// how large a group is to be, what its nodes will be like, and what an error of Azure means. Layer L1: pure functions of
// their arguments.
package nodegroup
