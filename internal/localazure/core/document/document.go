// Package document has what the local Azure does with every document, whatever its type. Its functions work on values, and
// change at most the document that they are given. Layer L2: azure, behaviour, kind.
package document
