// Package netns applies the state that package wiring compiles: network namespaces, links, addresses, routes and
// nftables rules. It uses ip and nft, in one transaction for each namespace. All names begin with the prefix of the
// instance, so [Sweep] can remove what is left after a crash. Layer L2.
package netns
