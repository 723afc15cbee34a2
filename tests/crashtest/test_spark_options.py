"""Configuration, jars and packages for the test's own sessions: checked before anything starts, there in
every driver.
"""

import shutil
import zipfile
from pathlib import Path

import pytest

from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee
from labkit.crashtest.configured import requested
from labkit.crashtest.kernel import kernel_campaign
from labkit.crashtest.settings import settings
from labkit.crashtest.spark_options import SparkOptions, resolve
from labkit.host.java import Java
from labkit.spark.jvm import PROFILES


def jar(path: Path) -> Path:
    """A jar with one file in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("hello_labkit.txt", "hello")
    return path


def made(folder: Path, **more: list[str]) -> SparkOptions:
    """The options that a sink's settings have."""
    (folder / "sink.py").touch()
    return settings(f"{folder}/sink.py:sink", **more).spark


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"conf": ["timeZone=UTC"]}, "write spark.key=value"),
        ({"conf": ["spark.sql.session.timeZone"]}, "write spark.key=value"),
        ({"conf": [" spark.x=1"]}, "write spark.key=value"),
        ({"conf": ["spark.master=local[4]"]}, "the test sets this Spark setting itself, so leave it out; the test"),
        ({"conf": ["spark.jars.packages=a:b:1"]}, "so leave it out; name packages with"),
        ({"conf": ["spark.driver.memory=lots"]}, "as in spark.driver.memory=2g"),
        ({"conf": ["spark.driver.extraJavaOptions='-Da"]}, "No closing quotation"),
        ({"jars": ["nowhere.jar"]}, "--jars nowhere.jar: there is no such file"),
        ({"jars": [__file__]}, "not a jar"),
        ({"packages": ["delta-spark"]}, "write group:artifact:version"),
    ],
)
def test_what_cannot_be_set_is_one_sentence(more: dict[str, list[str]], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        made(tmp_path, **more)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_jars_may_be_listed_as_spark_lists_them(tmp_path: Path) -> None:
    one, two = jar(tmp_path / "one.jar"), jar(tmp_path / "two.jar")
    found = made(tmp_path, jars=[f"{one}, {two}", str(one)]).jars
    assert found == (str(one), str(two))


def test_they_reach_the_jvm_beside_what_the_test_sets(tmp_path: Path) -> None:
    one = jar(tmp_path / "one.jar")
    conf = [
        "spark.sql.session.timeZone=Asia/Tokyo",
        "spark.driver.memory=2gb",
        "spark.driver.extraJavaOptions=-Da=1 -Db='x y'",
    ]
    profile = made(tmp_path, conf=conf, jars=[str(one)]).profile()
    usual = PROFILES["crashtest"]
    assert profile.options[-3:] == ("-Xmx2g", "-Da=1", "-Db=x y")
    assert profile.configuration == usual.configuration | {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.jars": str(one),
    }
    assert SparkOptions().profile() == usual


def test_the_command_that_repeats_a_test_has_them(tmp_path: Path) -> None:
    file, one = tmp_path / "sink.py", jar(tmp_path / "one.jar")
    file.write_text("")
    wanted = settings(f"{file}:sink", conf=("spark.a=b c",), jars=(str(one),), packages=("a:b:1",))
    more = f"--conf 'spark.a=b c' --jars {one} --packages a:b:1"
    assert more in wanted.command()


def test_a_project_says_them_once(tmp_path: Path) -> None:
    file = tmp_path / "sink.py"
    file.write_text("")
    said = {"subject": f"{file}:sink", "conf": ["spark.a=1"], "packages": ["a:b:1"]}
    wanted, over = requested(said, {}), requested(said, {"conf": ["spark.a=2"]})
    assert wanted.spark == SparkOptions({"spark.a": "1"}, (), ("a:b:1",))
    assert over.spark == SparkOptions({"spark.a": "2"}, (), ("a:b:1",))


@pytest.mark.slow
def test_a_package_that_cannot_be_had_is_one_sentence(java: Java, tmp_path: Path) -> None:
    conf = {
        "spark.jars.ivy": str(tmp_path / "ivy"),
        "spark.jars.ivySettings": str(only(tmp_path / "nowhere", tmp_path)),
    }
    with pytest.raises(InvalidInput) as refused:
        resolve(SparkOptions(conf, packages=("no.such:thing:1.0",)), java)
    said = str(refused.value)
    assert said.startswith("--packages no.such:thing:1.0: ")
    assert "not found" in said
    assert "\n" not in said


def only(repository: Path, folder: Path) -> Path:
    """Settings of Ivy with one repository, a folder: no test asks the network."""
    file = folder / "ivysettings.xml"
    file.write_text(
        '<ivysettings><settings defaultResolver="here"/><resolvers>'
        f'<ibiblio name="here" m2compatible="true" root="{repository.as_uri()}"/>'
        "</resolvers></ivysettings>"
    )
    return file


ASKS = """
import json, os, shutil
from pathlib import Path
STORE = Path(__file__).with_name("store")
def sink(df, batch):
    spark = df.sparkSession
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    assert loader.getResource("hello_labkit.txt") is not None
    assert spark._jvm.java.lang.System.getProperty("hello") == "x y"
    STORE.mkdir(exist_ok=True)
    (STORE / str(batch)).write_text("".join(json.dumps(row.asDict()) + "\\n" for row in df.collect()))
def read():
    return [json.loads(line) for path in sorted(STORE.glob("*")) for line in path.read_text().splitlines()]
def reset():
    shutil.rmtree(STORE, ignore_errors=True)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_driver_has_the_configuration_and_the_jars_of_a_package(tmp_path: Path) -> None:
    """The package lies in a repository of the test, so that nothing is fetched from elsewhere."""
    place = tmp_path / "repository" / "org" / "labkit" / "hello" / "1.0"
    jar(place / "hello-1.0.jar")
    (place / "hello-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.labkit</groupId>"
        "<artifactId>hello</artifactId><version>1.0</version></project>"
    )
    file = tmp_path / "sink.py"
    file.write_text(ASKS)
    ivy = only(tmp_path / "repository", tmp_path)
    conf = (
        "spark.sql.session.timeZone=Asia/Tokyo",
        "spark.driver.extraJavaOptions=-Dhello='x y'",
        f"spark.jars.ivy={tmp_path / 'ivy'}",
        f"spark.jars.ivySettings={ivy}",
    )
    wanted = settings(f"{file}:sink", batches=2, conf=conf, packages=("org.labkit:hello:1.0",))
    with kernel_campaign(wanted, tmp_path / "out") as running:
        shutil.rmtree(tmp_path / "repository")  # resolved once, before any driver
        assert running.healthy().guarantee is Guarantee.EXACTLY_ONCE
