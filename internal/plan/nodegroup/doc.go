// Package nodegroup decides how scale sets serve as node groups of cluster-autoscaler. It selects the scale sets that are
// node groups, and decides how large a group is to be. It predicts what the nodes of a group will be like, and says what an
// error of Azure means. Layer L1: pure functions of their arguments.
package nodegroup
