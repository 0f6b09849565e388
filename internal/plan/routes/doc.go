// Package routes decides the content of a cluster's route table, which routes packets to the nodes'
// pods without an overlay. Layer L1: decisions only.
//
// Many nodes, and sometimes other teams, share one route table. A decision states only the routes that it
// writes or removes.
package routes
