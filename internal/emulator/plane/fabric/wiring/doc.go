// Package wiring turns the documents of networks into what a Linux kernel must be
// told so that packets meet what the documents say: namespaces, links, addresses,
// routes and nftables rules. It is a function of values and has no effects. Layer
// L2: the vocabulary and the standard library only.
//
// A virtual network is three namespaces in a row:
//
//	machines - router - gateway - internet - the machine that kaz runs on
//
// The router knows private addresses: it has one link for each network interface,
// applies security groups and route tables, and chooses the receivers of load
// balancers. The gateway knows both sides: it gives connections that leave their
// public source address and public addresses of single interfaces their private
// one. The internet, one for all networks, knows public addresses only.
//
// Because public addresses are translated in a namespace of its own, a machine that
// connects to a public frontend of its own network leaves and comes in again, and
// the security groups see it with the public address that it left with.
//
// Packets that need another route than their destination's carry a mark, which is
// an IPv4 address read as a number: that of the network interface for packets that a
// load balancer sends somewhere with the frontend's address in them and for answers of
// the platform, and that of the
// sender's subnet for all others, whose route table applies. Addresses are unique in
// a network and stay, so no number has to be remembered.
package wiring
