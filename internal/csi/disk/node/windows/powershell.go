package windows

// The scripts that PowerShell runs. Values come in environment variables, so that no text of a user is ever part of a script.
// The scripts have no double quotes: they are one argument of the command line.

// Names of the environment variables.
const (
	diskVariable      = "KAZ_DISK"      // number of a disk
	partitionVariable = "KAZ_PARTITION" // number of a partition of the disk
	sizeVariable      = "KAZ_SIZE"      // bytes
	volumeVariable    = "KAZ_VOLUME"    // path of a volume, \\?\Volume{GUID}\
)

type script string

// begin ends a script at the first error, and keeps progress out of its output.
const begin = "$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue'\n"

// list prints all disks with their partitions as JSON, but not the virtual disks of containers. Enumerations are printed as texts.
const list script = begin + `
$partitions = @(Get-Partition)
$disks = @(Get-Disk | Where-Object BusType -ne 'File Backed Virtual' | ForEach-Object {
  $disk = $_
  $own = @($partitions | Where-Object DiskNumber -eq $disk.Number | ForEach-Object {
    $volume = Get-Volume -Partition $_ -ErrorAction SilentlyContinue
    [pscustomobject]@{
      Number = $_.PartitionNumber
      Type = [string]$_.Type
      Offset = $_.Offset
      Size = $_.Size
      Volume = [string]$volume.UniqueId
      FileSystem = [string]$volume.FileSystem
      Label = [string]$volume.FileSystemLabel
    }
  })
  [pscustomobject]@{
    Number = $disk.Number
    Location = [string]$disk.Location
    BusType = [string]$disk.BusType
    Style = [string]$disk.PartitionStyle
    Size = $disk.Size
    System = $disk.IsBoot -or $disk.IsSystem
    Offline = [bool]$disk.IsOffline
    ReadOnly = [bool]$disk.IsReadOnly
    Partitions = $own
  }
})
ConvertTo-Json -Compress -Depth 4 -InputObject $disks
`

// rescan has Windows look for new disks and new sizes.
const rescan script = begin + `Update-HostStorageCache`

// The steps that make a volume of a disk. Each looks again whether the disk still needs it.
const (
	enable script = begin + `
Set-Disk -Number $env:KAZ_DISK -IsOffline $false
Set-Disk -Number $env:KAZ_DISK -IsReadOnly $false`

	initialize script = begin + `
Get-Disk -Number $env:KAZ_DISK | Where-Object PartitionStyle -eq 'RAW' | Initialize-Disk -PartitionStyle GPT`

	divide script = begin + `
New-Partition -DiskNumber $env:KAZ_DISK -UseMaximumSize | Out-Null`

	format script = begin + `
Get-Partition -DiskNumber $env:KAZ_DISK -PartitionNumber $env:KAZ_PARTITION | Get-Volume |
  Where-Object { $_.FileSystem -in '', 'RAW', $null } | Format-Volume -FileSystem NTFS -Confirm:$false | Out-Null`
)

// sizes prints the size of a partition, and the size to which it can grow, as JSON. resize sets its size.
const (
	sizes script = begin + `
$partition = Get-Partition -DiskNumber $env:KAZ_DISK -PartitionNumber $env:KAZ_PARTITION
$most = ($partition | Get-PartitionSupportedSize).SizeMax
ConvertTo-Json -Compress -InputObject ([pscustomobject]@{ Size = $partition.Size; Most = $most })`

	resize script = begin + `
Get-Partition -DiskNumber $env:KAZ_DISK -PartitionNumber $env:KAZ_PARTITION | Resize-Partition -Size $env:KAZ_SIZE`
)

// flush writes what Windows still holds of a volume to its disk. A volume that is gone has nothing to write.
const flush script = begin + `
Get-Volume -UniqueId $env:KAZ_VOLUME -ErrorAction SilentlyContinue | Write-VolumeCache`
