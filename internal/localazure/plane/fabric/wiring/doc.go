// Package wiring is the compiler of the data plane. It compiles the documents of networks into the state of a Linux kernel:
// namespaces, links, addresses, routes and nftables rules. The kernel then treats packets as the documents say. The
// compiler is a function of values without effects. Layer L2: the vocabulary and the standard library only.
//
// A virtual network is three namespaces in a row:
//
//	machines - router - gateway - internet - the machine that kaz runs on
//
// The router has private addresses only. It has one link for each network interface, applies security groups and route
// tables, and chooses the backends of load balancers. The gateway has private and public addresses. It translates the
// source of connections that leave the network, and the destination of connections to public addresses of interfaces. All
// networks share the internet, which has public addresses only.
//
// The gateway translates public addresses in its own namespace. A connection from a machine to a public frontend of its own
// network therefore leaves the network and comes back. Security groups apply to its public source address.
//
// A packet that needs another route than that of its destination has a mark, which is an IPv4 address as a number. Packets
// that a load balancer forwards with the frontend's address have the mark of the network interface. Replies of the platform
// have this mark, too. All others have the mark of the sender's subnet, so that its route table applies. The addresses are
// unique in a network and do not change, so the compiler need not store the marks.
package wiring
