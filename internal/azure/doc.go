// Package azure is the vocabulary that every part of kaz speaks: resource ids,
// documents, errors by kind, and the two interfaces through which Azure is read
// and written. Layer L0: standard library only, and nothing of it that touches
// the network or the operating system.
//
// An Azure resource is a [Document]: the JSON that Azure returned, whole.
// Property structs (azure/network, azure/compute, ...) are typed views of the
// fields kaz reads or owns; [Overlay] writes such a view over a document and
// keeps every field that the view does not know.
package azure
