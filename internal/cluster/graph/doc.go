// Package graph links the units of a cluster. A [Unit] is a group of Azure resources that are deployed together. A resource
// refers to another one by a [Ref], which its unit provides as a port: a typed value such as [Subnet]. A resource that exists
// gives the same port by its id. [Link] checks the references and computes from them what must wait for what, so that no order
// is written by hand. Layer L1: pure.
package graph
