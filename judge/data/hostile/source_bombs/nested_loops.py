# expected: TOO_MUCH

# include: none.py
for x in y:
 for x in y:
  for x in y:
   for x in y:
    for x in y:
     for x in y:
      for x in y:
       for x in y:
        for x in y:
         for x in y:
          for x in y:
           for x in y:
            for x in y:
             for x in y:
              for x in y:
               for x in y:
                for x in y:
                 for x in y:
                  for x in y:
                   for x in y:
                    for x in y:
                     for x in y:
                      for x in y:
                       for x in y:
                        for x in y:
                         for x in y:
                          for x in y:
                           for x in y:
                            for x in y:
                             for x in y:
