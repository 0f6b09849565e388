// Package share plans volumes of Azure Files: it reads the parameters of StorageClasses and persistent volumes, names
// shares and volumes, chooses storage accounts, and says which documents and mount options a volume needs. Layer L1, pure.
package share
