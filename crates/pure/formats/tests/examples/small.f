# A small file server: pages are read, some are replaced, every change is noted.
set $dir=/srv
set $count=200
set $pagesize=cvar(type=cvar-gamma,parameters=mean:8192;gamma:1.5)
set $readers=2
set $io=64k
set $seconds=3

set mode quit alldone
eventgen rate=500

define fileset name=pages,path=$dir,size=$pagesize,entries=$count,dirwidth=20,prealloc=90,readonly
define file name=notes,path=$dir,size=4k,prealloc,reuse

define process name=server,instances=1
{
  thread name=reader,memsize=1m,instances=$readers
  {
    flowop openfile name=open1,filesetname=pages,fd=1
    flowop readwholefile name=read1,fd=1,iosize=$io
    flowop closefile name=close1,fd=1
    flowop statfile name=stat1,filesetname=pages
    flowop listdir name=list1,filesetname=pages
    flowop read name=lookup,filename=notes,fd=3,
      iosize=512,random,workingset=4k
    flowop eventlimit name=limit
  }
  thread name=writer,instances=1
  {
    flowop deletefile name=delete1,filesetname=pages
    flowop createfile name=create1,filesetname=pages,fd=1
    flowop writewholefile name=write1,fd=1,iosize=$io
    flowop fsync name=sync1,fd=1
    flowop closefile name=close2,fd=1
    flowop appendfilerand name=note1,filename=notes,fd=2,iosize=1k,iters=2
    flowop write name=mark,filename=notes,fd=2,iosize=512,dsync
    flowop opslimit name=limit2
  }
}

echo "small.f is ready"
run $seconds
