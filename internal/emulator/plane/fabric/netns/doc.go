// Package netns brings what package wiring says into the kernel: network namespaces,
// links, addresses, routes and nftables rules, by ip and nft in one transaction for
// each namespace. Everything that it makes bears the prefix of its instance, by which
// [Sweep] finds what a crash left behind. Layer L2.
package netns
