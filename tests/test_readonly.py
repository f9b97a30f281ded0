from __future__ import annotations

import pytest

from gaia_sessions.readonly import only_reads

READING = """
ls
ls -la /tmp
/bin/ls
pwd
echo hello-from-alpha
exit 3
cat a b | grep -n x | head -5
cd /srv && ls 2>/dev/null || true
! grep -q x file
[ -f x ] && cat x
[[ -d x ]] ; test -r x
wc -l < in.txt
cat $HOME/x "$FILE" *.py {a,b}
grep -rn "foo > bar" src
set -euo pipefail; ls
tail -n 20 log # the end of it
echo done > /dev/null 2>&1
date -u +%F
date -d '2 days ago'
sort -u names | uniq -c
file a.bin
tree -L 2
rg --files -g '*.py'
fd -e py
find . -name '*.py' -not -path './x/*' -type f
find . \\( -name a -o -name b \\) -print
find . -name '*.py' | xargs grep -n foo
find . -print0 | xargs -0 -n 1 wc -l
xargs -I {} cat {}
sed -n '1,20p' file
sed -n 5p
sed 's/a b/c/g' file
sed -E 's|^x|y|'
sed '$d' file
awk '{print $1}' file
awk -F: '$3 == 0 {print $1}' /etc/passwd
command -v git
git status --short
git log --oneline -5
git -C repo --no-pager diff HEAD~1 -- a.py
git
git branch
git branch -a
git branch --list 'x*'
git tag
git tag -l 'v*'
git stash list
git remote -v
git remote get-url origin
git config --get user.name
git worktree list
git submodule status
git reflog
git reflog show main
python3 --version
terraform --help
terraform plan
terraform show
kubectl get pods -o yaml
docker ps -a
pip list
npm ls
gaia-sessions update agent-1 -m finding=one
/opt/venv/bin/gaia-sessions --root /x get agent-1
"""

CHANGING = """
rm x
ls; rm x
ls && make
ls | tee out
ls > out
cat a >> b
echo $(rm x)
cat <<END
(ls)
ls &
./ls
bin/cat x
/srv/cat x
$LS
X=1
PATH=. ls
LS=1 ls
env ls
sudo ls
bash -c ls
python3 -c 'print(6*7)'
python3 x.py --version
./configure --help
if true; then ls; fi
f() { ls; }
{ ls; }
exec ls
eval ls
alias ls=rm
make
touch x
cp a b
mv a b
mkdir x
chmod +x a
curl -o x http://localhost
date -s tomorrow
date --set=tomorrow
date 010100002026
sort -o out in
sort -uo out in
sort --output=out in
sort --out=out in
sort --compress-program=x in
uniq in out
file -C -m magic
tree -o out
tree -ao out
rg --pre x y
fd -x rm
fd -Hx rm
fd --exec rm
find . -delete
find . -name x -exec rm '{}' ';'
find . -execdir ls
find . -ok ls
find . -fprint out
find . -fls out
find . $WHAT
find . -{delete,print}
find . -name x | xargs rm
xargs sh -c ls
xargs -a in cat
sed -i s/a/b/ file
sed -i.bak s/a/b/ file
sed 's/a/b/w out' file
sed 's/a/b/e' file
sed 'w out' file
sed -n '1e rm x' file
sed -f script file
sed -e 's/a/b/' file
awk '{print > "out"}' file
awk '{print | "sh"}' file
awk 'BEGIN {system("rm x")}'
awk -f script file
awk -i inplace '{print}' file
command rm x
git commit -m x
git add .
git checkout main
git diff --output=x
git diff --outp x
git log --ext-diff
git -c core.pager=rm log
git branch new
git branch -d old
git branch -D old
git branch -a new -D
git branch --list -D x
git tag v1
git tag -d v1
git tag -l -d v1
git stash
git stash pop
git remote add x y
git remote -v update
git config user.name x
git config --get x --unset
git worktree add x
git reflog expire --all
git fetch
git push
git status $X
terraform apply
terraform plan -out=tfplan
terraform destroy
kubectl apply -f x
kubectl delete pod x
docker run x
docker
pip install x
npm install
gaia-sessions cleanup
"""


@pytest.mark.parametrize("command", READING.strip().splitlines())
def test_what_only_reads_is_known(command: str) -> None:
    assert only_reads(command)


@pytest.mark.parametrize("command", CHANGING.strip().splitlines())
def test_everything_else_is_taken_to_change_something(command: str) -> None:
    assert not only_reads(command)


def test_one_program_that_changes_something_is_enough() -> None:
    commands = ["ls", "cat x", "git status", "rm x", "pwd"]
    assert only_reads("\n".join(commands[:3]))
    assert not only_reads("\n".join(commands))


def test_nothing_reads() -> None:
    assert only_reads("")
    assert only_reads("!")
