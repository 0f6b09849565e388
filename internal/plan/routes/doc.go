// Package routes decides what a cluster's route table holds, so that packets to a
// node's pods find their node without an overlay. Layer L1: decisions only.
//
// A route table is one document that many nodes share, and often other people too:
// a decision states the whole of it, with the routes of others kept as they are.
package routes
