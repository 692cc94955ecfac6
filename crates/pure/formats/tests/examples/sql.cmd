@echo off
rem SQL Server: random 8 KiB, then a scan
"C:\Tools\diskspd.exe" -b8K -d120 -W30 -h -o32 -t4 -r -w30 -L -z42 -c20G D:\data\test.dat
diskspd -b512K -d60 -Su -o8 -s D:\data\test.dat
