// Package azure is the vocabulary of kaz: resource ids, documents, errors by kind, and the two interfaces that read
// and write Azure. Layer L0: standard library only, and nothing of it that touches the network or the operating
// system.
//
// An Azure resource is a [Document]: the JSON that Azure returned, whole. Property structs (azure/network,
// azure/compute, ...) are typed views of the fields that kaz reads or owns. [Overlay] writes such a view over a
// document and keeps every field that the view does not know.
package azure
