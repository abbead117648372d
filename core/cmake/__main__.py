"""python -m core.cmake: the folder of coreConfig.cmake, for cmake -Dcore_DIR=…"""

from core.cmake import folder

if __name__ == "__main__":
    print(folder())
