// Package share plans volumes of Azure Files. It reads the parameters of StorageClasses and persistent volumes, names shares
// and volumes, and chooses storage accounts. It returns the documents and mount options that a volume needs. Layer L1, pure.
package share
